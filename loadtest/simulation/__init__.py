"""Many replicas of the service on a simulated clock, with service times that were measured.

What is simulated: arrivals, routing, the queues and cores of each replica, its answer cache, failures, autoscaling.
What is real: admission, urgencies and what is learnt about service times, which are the service's own code and take
the simulated clock as an argument.
"""
