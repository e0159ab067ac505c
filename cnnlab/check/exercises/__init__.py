"""The exercises of the lessons: a module each, whose functions are the model answers."""
