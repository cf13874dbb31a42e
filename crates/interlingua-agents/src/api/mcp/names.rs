//! The names under which the tools of servers are offered: `mcp__SERVER__TOOL`.
//!
//! Model APIs accept letters, digits, `_` and `-`, and 64 characters. Names that would be the same
//! after they were made acceptable are numbered, in the order of the servers and their tools, which
//! is always the same.

/// The most characters of a name.
const LONGEST: usize = 64;

/// The names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: Vec<String>,
}

impl Names {
    /// Returns the name for a tool, which no other tool has.
    pub(super) fn add(&mut self, server: &str, tool: &str) -> String {
        let whole = format!("mcp__{}__{}", acceptable(server), acceptable(tool));
        let mut name = shortened(&whole, "");
        let mut number = 1_u64;
        while self.taken.contains(&name) {
            number += 1;
            name = shortened(&whole, &format!("_{number}"));
        }
        self.taken.push(name.clone());
        name
    }
}

/// A text of letters, digits, `_` and `-`.
fn acceptable(text: &str) -> String {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    text.chars().map(|letter| if is_fine(letter) { letter } else { '_' }).collect()
}

/// The beginning of a name, of ASCII characters, with an ending.
fn shortened(name: &str, ending: &str) -> String {
    let kept = LONGEST.saturating_sub(ending.len()).min(name.len());
    format!("{}{ending}", name.get(..kept).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_acceptable() {
        let mut names = Names::default();
        assert_eq!(names.add("git", "log"), "mcp__git__log");
        assert_eq!(names.add("my server", "read/file.é"), "mcp__my_server__read_file__");
        let long = names.add("server", &"x".repeat(100));
        assert_eq!(long.len(), 64);
        assert!(long.starts_with("mcp__server__xxx"), "{long}");
    }

    #[test]
    fn names_that_collide_are_kept_apart() {
        let mut names = Names::default();
        assert_eq!(names.add("a", "b.c"), "mcp__a__b_c");
        assert_eq!(names.add("a", "b/c"), "mcp__a__b_c_2");
        assert_eq!(names.add("a", "b_c"), "mcp__a__b_c_3");
        // A name that is like one with a number.
        assert_eq!(names.add("a", "b_c_2"), "mcp__a__b_c_2_2");
        // The separator may also be a part of a name.
        assert_eq!(names.add("x__y", "z"), "mcp__x__y__z");
        assert_eq!(names.add("x", "y__z"), "mcp__x__y__z_2");
        let long = "x".repeat(100);
        let (one, two) = (names.add("s", &long), names.add("s", &format!("{long}y")));
        assert_eq!((one.len(), two.len()), (64, 64));
        assert_ne!(one, two);
    }
}
