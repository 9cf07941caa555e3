"""Traffic for the replay: attackers built from the audit's trials, benign users by profile, or an access log."""
