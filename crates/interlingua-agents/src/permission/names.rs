//! Lists of names, written in one string so that they stay readable.

/// Names that are separated by blanks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) &'static str);

impl Names {
    /// Whether this is one of the names, exactly.
    pub(crate) fn contains(self, name: &str) -> bool {
        self.iter().any(|listed| listed == name)
    }

    /// The names in their order.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_no_name() {
        let names = Names("git status-all");
        assert!(names.contains("git") && names.contains("status-all"));
        for other in ["gi", "status", "git status-all", "", " "] {
            assert!(!names.contains(other), "{other:?}");
        }
    }
}
