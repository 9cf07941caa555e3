"""From trials to tables: columns of numbers in, data frames out; nothing here opens a file."""
