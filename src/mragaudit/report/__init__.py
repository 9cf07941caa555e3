"""Tables, traces and settings in; figures (SVG text) and one self-contained HTML page out."""
