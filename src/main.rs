//! The command-line program. Owns nothing: it hands its arguments over.

fn main() {}
