"""A planner: what each way to train takes, sends and holds on a machine, before it is run."""
