//! Escapes in `$'…'`, `echo -e` and `printf`.

/// The longest escape that is written as a number, in digits after its letter.
const MOST_DIGITS: usize = 8;

/// A text with its escapes decoded, as in `$'…'`. Nothing if a part of it is not known or no text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(escape) = rest.next() else {
            bytes.push(b'\\');
            break;
        };
        match escape {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, escape),
            'x' => bytes.push(u8::try_from(number(&mut rest, "", 2, 16)?).ok()?),
            'u' => push(&mut bytes, char::from_u32(number(&mut rest, "", 4, 16)?)?),
            'U' => push(&mut bytes, char::from_u32(number(&mut rest, "", MOST_DIGITS, 16)?)?),
            '0'..='7' => {
                let first = escape.to_string();
                bytes.push(u8::try_from(number(&mut rest, &first, 2, 8)? & 0xFF).ok()?);
            }
            'c' => return None,
            other => {
                bytes.push(b'\\');
                push(&mut bytes, other);
            }
        }
    }
    // What follows a NUL is cut off.
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Takes the digits of a number, after those that are known.
fn number(rest: &mut std::str::Chars<'_>, known: &str, most: usize, base: u32) -> Option<u32> {
    let more = rest.as_str().chars().take(most).take_while(|c| c.is_digit(base)).count();
    let digits = rest.as_str().get(..more)?;
    let value = u32::from_str_radix(&format!("{known}{digits}"), base).ok()?;
    *rest = rest.as_str().get(more..)?.chars();
    Some(value)
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// What `echo` or `printf` writes for words, if it can be told.
pub(super) fn output(name: &str, args: &[&str]) -> Option<String> {
    match name {
        "echo" => {
            let flags = args.iter().take_while(|arg| is_echo_flag(arg)).count();
            let (flags, words) = args.split_at(flags);
            let text = words.join(" ");
            // Some shells decode escapes without being asked to.
            if !text.contains('\\') {
                return Some(text);
            }
            let is_decoded = flags.iter().any(|flag| flag.contains('e'));
            if is_decoded && !text.contains("\\c") && !text.contains("\\0") { decoded(&text) } else { None }
        }
        "printf" => {
            let args = args.strip_prefix(&["--"]).unwrap_or(args);
            let (format, words) = args.split_first()?;
            let line = match *format {
                "%s" | "%b" => "",
                "%s\\n" | "%s\n" | "%b\\n" => "\n",
                "%s " => " ",
                _ if format.starts_with('-') || format.contains('%') => return None,
                _ => return decoded(format),
            };
            if format.contains('b') && words.iter().any(|word| word.contains('\\')) {
                return None;
            }
            Some(words.iter().flat_map(|word| [*word, line]).collect())
        }
        _ => None,
    }
}

fn is_echo_flag(arg: &str) -> bool {
    arg.len() > 1 && arg.strip_prefix('-').is_some_and(|flags| flags.chars().all(|c| "neE".contains(c)))
}
