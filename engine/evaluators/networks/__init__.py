"""Architectures of loadable evaluators, one file each: what its parameters are and what a position is worth by them.

Every file here shows

    NUMBER    its place in the dispatch of `loaded.py`, never reused
    SOURCE    where it was described
    GAMES     the games it knows
    SCALE     centipawns per unit of its value, where a file says nothing else
    OUTPUT    "value" where the value is that of the position; without it, it is a logit
    OPTIONS   its sizes by name, with their defaults
    shapes(variant, options)    the arrays of its parameters, in the order in which a genome holds them
    layout(variant, options)    whole numbers for the kernel, written into `shape` of the record
    naive(variant, options, arrays, position)    the value for the attackers, float64, slow and obvious
    value(params, state)        the same, as a kernel

It may also show

    default(variant)            arrays with weights set by hand, where learning can begin
    terms(options, params, state)    what each feature has added to the value

Those that also know moves have RECORD = "policy", for the record of `policy_networks.py`; their value is in the outputs
of one pass, and beside `naive` there is

    naive_policy(variant, options, arrays, position)    a number for each place of the game's `policy.py`, before the
                                                        softmax over the legal moves

One whose weights are whole numbers names the types of its arrays in TYPES (`nnue.py`, whose record and kernels are in
`nnue_network.py`: RECORD = "nnue").

The name of an architecture is that of its file, with `-` for `_`.
"""
