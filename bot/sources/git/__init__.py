"""Git as a source: what the checkout holds from which a run would be launched again, and how its commit lies.

``source`` asks, ``lineage`` asks of the commit, ``program`` runs git, ``parsing`` reads what it prints, ``fetching``
brings the remote's branch, ``content`` digests the work tree, ``patch`` writes the difference out for the record.
"""
