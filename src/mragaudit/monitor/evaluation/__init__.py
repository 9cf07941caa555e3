"""What a replay shows: detection, false alarms, thresholds to recommend, what throttling saves, languages."""
