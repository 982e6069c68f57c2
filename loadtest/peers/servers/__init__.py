"""A server for each peer, in the shape of its own quick start, with its documented settings for this machine.

Each has a worker a core with one thread each, and the most compact body that it takes; each file says which
settings, where they are documented, and what was measured to choose them: CPU time a question with the small model,
on two cores that others used, too, so differences below a tenth say little.

Nobody batches, although most can: on a CPU an item takes as long in any batch. Measured, CPU ms an item, alone and
in eights: ONNX Runtime 1.66 and 1.65 (small model), 179 and 183 (ViLT-B/32); torch 367 and 411 (in twos and fours
351 and 354). Torch with two threads on one question took 988 ms of CPU where one takes 367.
"""
