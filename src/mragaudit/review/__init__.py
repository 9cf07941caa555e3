"""What a person types and reads when checking or comparing runs."""
