"""The assignment kit: exercises without answers for students, and the rest for who grades."""
