"""Attack families, each seeing the target only as text in and text out."""
