//! Reads the string fields of an event that cannot be read as a whole: too large, cut off, or invalid.

/// A field by its name, and its value unless that is unreadable or the field is there twice with another one.
pub(super) type FoundField = (String, Option<String>);

/// The wanted fields of the outermost object. Reading ends where the bytes stop being JSON.
pub(super) fn string_fields(bytes: &[u8], wanted: impl Fn(&str) -> bool) -> Vec<FoundField> {
    let mut found: Vec<FoundField> = Vec::new();
    let mut scanner = Scanner { bytes, position: 0 };
    scanner.scan(|name, value| {
        if !wanted(&name) {
            return;
        }
        let FieldValue::Whole(value) = value else { return };
        let value = text(value);
        match found.iter_mut().find(|(known, _)| *known == name) {
            // Nobody knows which of the two counts.
            Some((_, known)) if *known != value => *known = None,
            Some(_) => {}
            None => found.push((name, value)),
        }
    });
    found
}

/// The value of a field of the outermost object, as it is written; nothing if it is not there to its end, or twice.
#[cfg(feature = "daemon")]
pub(crate) fn raw_field<'b>(bytes: &'b [u8], wanted: &str) -> Option<&'b [u8]> {
    let mut found = Vec::new();
    Scanner { bytes, position: 0 }.scan(|name, value| found.extend((name == wanted).then_some(value)));
    match found[..] {
        [FieldValue::Whole(value)] => Some(value),
        _ => None,
    }
}

/// The same, of a field that may be cut off at the end of the bytes.
#[cfg(feature = "daemon")]
pub(crate) fn partial_value<'b>(bytes: &'b [u8], wanted: &str) -> Option<&'b [u8]> {
    let mut found = None;
    Scanner { bytes, position: 0 }.scan(|name, value| found = found.or((name == wanted).then_some(value)));
    found.map(|(FieldValue::Whole(value) | FieldValue::CutOff(value))| value)
}

/// The value of a field, as it is written.
#[derive(Debug, Clone, Copy)]
enum FieldValue<'b> {
    Whole(&'b [u8]),
    /// It may go on behind the end of the bytes, or is no JSON.
    #[cfg_attr(
        not(feature = "daemon"),
        expect(dead_code, reason = "only the daemon gets the beginnings of lines")
    )]
    CutOff(&'b [u8]),
}

struct Scanner<'b> {
    bytes: &'b [u8],
    position: usize,
}

impl<'b> Scanner<'b> {
    /// Calls `field` with the name and the value of each field of the outermost object. `None` at the end of what can be
    /// read.
    fn scan(&mut self, mut field: impl FnMut(String, FieldValue<'b>)) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let name = text(self.string()?);
            self.expect(b':')?;
            let first = self.peek()?;
            let start = self.position;
            let whole = if first == b'"' { self.string().map(drop) } else { self.skip_value() };
            let value = match whole {
                Some(()) => FieldValue::Whole(self.bytes[start..self.position].trim_ascii_end()),
                None => FieldValue::CutOff(&self.bytes[start..]),
            };
            if let Some(name) = name {
                field(name, value);
            }
            whole?;
            self.expect(b',')?;
        }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.bytes.get(self.position..)?;
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.position += blank;
        rest.get(blank).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        let is_next = self.peek()? == byte;
        self.position += usize::from(is_next);
        is_next.then_some(())
    }

    /// Reads a string to its end, with its quotation marks.
    fn string(&mut self) -> Option<&'b [u8]> {
        self.expect(b'"')?;
        let start = self.position - 1;
        loop {
            match *self.bytes.get(self.position)? {
                b'"' => break,
                b'\\' => self.position += 2,
                _ => self.position += 1,
            }
        }
        self.position += 1;
        Some(&self.bytes[start..self.position])
    }

    /// Skips a value that is no string, up to the comma or the bracket behind it.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b']' | b',' if depth == 0 => return Some(()),
                _ => {}
            }
            self.position += 1;
        }
    }
}

/// The text of a string; `None` if it is no Unicode.
fn text(quoted: &[u8]) -> Option<String> {
    serde_json::from_slice(quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_outermost_object_are_found_as_far_as_it_is_readable() {
        let some = |text: &str| Some(text.to_owned());
        let cases: &[(&[u8], Option<Option<String>>)] = &[
            (br#"{"name":"a"}"#, Some(some("a"))),
            (br#" { "x" : [1,{"name":"no"}], "name" : "a" , "#, Some(some("a"))),
            (br#"{"x":"name\":\"no","name":"a\n"#, None),
            (br#"{"x":"\\","name":"a\"b","input":{"name":"no""#, Some(some("a\"b"))),
            (br#"{"name":"a","x":"#, Some(some("a"))),
            (br#"{"n\u0061me":"a"}"#, Some(some("a"))),
            (b"{\"x\":\"\xff\",\"name\":\"a\"}", Some(some("a"))),
            (br#"{"x":"\ud800","name":"a"}"#, Some(some("a"))),
            (br#"{"name":"\ud800"}"#, Some(None)),
            (b"{\"name\":\"\xff\"}", Some(None)),
            (br#"{"name":"a","name":"b"}"#, Some(None)),
            (br#"{"name":"a","name":"a"}"#, Some(some("a"))),
            (br#"{"name":"a","name":"b","name":"a"}"#, Some(None)),
            (br#"{"name":7}"#, Some(None)),
            (br#"{"name":{"name":"no"}}"#, Some(None)),
            (br#"{"name""#, None),
            (br#"{"name":"a"#, None),
            (br#"{"name":"a\"#, None),
            (br#"{name:"a"}"#, None),
            (br#"["name","a"]"#, None),
            (b"", None),
            (b"\xef\xbb\xbf{}", None),
        ];
        for (bytes, expected) in cases {
            let found = string_fields(bytes, |name| name == "name");
            let found = found.first().map(|(_, value)| value.clone());
            assert_eq!(found, *expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn deep_and_long_events_are_scanned_without_recursion() {
        let deep = format!("{{\"x\":{}{},\"name\":\"a\"}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert_eq!(string_fields(deep.as_bytes(), |_| true).len(), 2);
    }
}
