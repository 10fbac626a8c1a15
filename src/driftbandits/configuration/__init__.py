"""Configuration: reads and checks what a user wrote (files, names, classes, settings); knows no experiment."""
