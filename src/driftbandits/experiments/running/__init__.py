"""Running: builds worlds and policies from definitions, checks them, and plays cells on engines; judges nothing."""
