"""The audited pipeline as one object, with the hooks of a defense between its parts."""
