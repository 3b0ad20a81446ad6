"""Cloud resources, as Pulumi components over the plan.

What decides whether a resource exists, its name or its number is plain Python from the plan;
only values are Pulumi inputs. Nothing is made inside ``apply``.

Names in the state are for ever: a component or resource that is renamed or moved carries an
alias of its old name or parent, and the alias is dropped only after every environment of every
user was updated, which takes a major version.
"""
