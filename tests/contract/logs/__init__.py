"""What lies in logs, on every back end: these modules share three brokers, which live as long as this package's tests run."""
