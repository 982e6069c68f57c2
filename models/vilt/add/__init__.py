"""A ViLT checkpoint of the hub's format to a model folder: `vqa models add`, `python -m models.vilt.add`.

command.py     the command line
request.py     what is asked for, and whether it may be made
hub.py         a hub id to a folder
source.py      a folder or a hub's repository as a checkpoint that is here
folder.py      what a checkpoint folder has to be
scratch.py     where a model is made, and what killed runs left
agreement.py   the int8 graph beside the fp32 one
card.py        the model card
making.py      the steps together
result.py      what a folder says of how it was made
"""
