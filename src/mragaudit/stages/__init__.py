"""One module a Snakemake rule: read records, call, write records. Only these modules open result files."""
