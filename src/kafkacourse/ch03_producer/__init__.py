"""Chapter 03: the producer of the stock-price application, and its guarantees."""
