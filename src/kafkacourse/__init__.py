"""The Kafka course: a package per chapter with the checks of its labs and its quiz, and the stock-price application."""
