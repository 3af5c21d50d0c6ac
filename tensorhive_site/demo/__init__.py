"""A fleet to try the product with: simulated GPU hosts behind real SSH, people, four weeks of use.

What happens on the fleet is a pure function of time (`fleet`), so that live answers (`answers`),
past samples and reservations (`seeding`) all tell the same story.
"""
