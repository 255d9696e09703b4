//! Tests of the CMSIS-NN backend: see `tests/`, and `run.sh`, which builds the stand-in and runs them.
