"""What the people who run the service see: metrics, logs, the event loop's lag. Knows nothing of questions."""
