"""What stands between a RAG service and its users: middleware, dependency, retriever wrappers, reverse proxy."""
