//! Quotes, braces and variables; flags and operands.

use super::{check, only};

#[test]
fn quotes_are_taken_off() {
    check(&[
        ("'rm' \"-rf\" \\/", "rm -rf /"),
        ("r'm' -r\"f\" /", "rm -rf /"),
        ("r\\m -rf /", "rm -rf /"),
        ("''rm \"\"-rf", "rm -rf"),
        ("a '' \"\"", "a \"\" \"\""),
        ("a 'b c' \"d  e\"", "a \"b c\" \"d  e\""),
        ("a \"b\\\"c\\$d\\e\"", "a b\"c$d\\e"),
        ("a 'it'\\''s'", "a it's"),
        ("$'rm' $'-r\\x66' $'\\057'", "rm -rf /"),
        ("$'\\162\\u006d' x", "rm x"),
        ("$\"rm\" -rf", "rm -rf"),
        ("a $'b\\'c' d", "a b'c d"),
        ("a $'b\\tc'", "a \"b\\tc\""),
        ("a $", "a $"),
        ("a \"$\"", "a $"),
        ("a b\\", "a b\\"),
        ("a \\ b", "a \" b\""),
        ("ä 'ö' ü\\ß", "ä ö üß"),
        ("a 'b", "? "),
        ("a \"b", "? "),
        ("$'\\c' x", "? ?($'\\c') x"),
    ]);
}

#[test]
fn braces_are_expanded() {
    check(&[
        ("{rm,-rf,/}", "rm -rf /"),
        ("a {b,c}d", "a bd cd"),
        ("a b{c,d{e,f}}g", "a bcg bdeg bdfg"),
        ("a {1..3} {c..a}", "a 1 2 3 c b a"),
        ("a {01..3} {1..9..4}", "a 01 02 03 1 5 9"),
        ("a {b,}", "a b"),
        ("a {b} {} {b,c", "a {b} {} {b,c"),
        ("a '{b,c}' \\{b,c}", "a {b,c} {b,c}"),
        ("a {'b c',d}", "a \"b c\" d"),
        ("a {,b}{,c}", "a c b bc"),
        ("a {$x,b}", "? ?a $x b"),
        ("a {1..100000}", "? ?a {1..100000}"),
        ("git push --{force,tags}", "git push --force --tags"),
    ]);
}

#[test]
fn variables_with_one_value_are_followed() {
    check(&[
        ("x=rm; $x -rf /", "rm -rf /"),
        ("x=rm\n${x} -rf /", "rm -rf /"),
        ("a=push; git $a --force", "git push --force"),
        ("X='rm -rf /'; $X", "rm -rf /"),
        ("X='rm -rf /'; \"$X\"", "? ?(rm -rf /)"),
        ("a=r b=m; $a$b x", "rm x"),
        ("a=r; b=${a}m; $b x", "rm x"),
        ("x=' a b '; c$x\"d\"", "c a b d"),
        ("x=; $x rm", "rm"),
        ("export x=rm; $x y", "export x=rm ; rm y"),
        ("x=rm && $x y", "rm y"),
        ("rm${IFS}-rf${IFS}/", "rm -rf /"),
        ("rm$IFS-rf", "rm -rf"),
        ("IFS=,; x=rm,y; $x", "? ?($x)"),
        ("x=rm $x y", "? ?x=rm ($x) y"),
        ("a || x=rm; $x y", "? a ; ?($x) y"),
        ("if a; then x=rm; fi; $x y", "? a ; ?($x) y"),
        ("(x=rm); $x y", "? ?($x) y"),
        ("x=rm & $x y", "? ?($x) y"),
        ("x=a; x=rm; $x y", "? ?($x) y"),
        ("x=a; x+=b; $x y", "? ?($x) y"),
        ("x=a; read x; $x y", "? read x ; ?($x) y"),
        ("x=a; for x in b; do $x; done", "? ?($x)"),
        ("x=a; while b; do $x; x=rm; done", "? b ; ?($x)"),
        ("x=a; . f; $x", "? . f ; ?($x)"),
        ("x=a; declare -u x; $x", "? declare -u x ; ?($x)"),
        ("x=(rm y); $x", "? ?($x)"),
        ("x=$(a); $x y", "? a ; ?($x) y"),
        ("x=ab; ${x/a/b} y", "? ?(${x/a/b}) y"),
        ("$1 a", "? ?($1) a"),
        ("a \"$@\" $HOME", "? ?a $@ $HOME"),
        ("$x", "? ?($x)"),
        ("r${x}m y", "? ?(r${x}m) y"),
        ("/bin/r? y", "? ?(/bin/r?) y"),
        ("a *.txt [b]", "a *.txt [b]"),
        ("alias x='rm -rf'; x /", "alias \"x=rm -rf\" ; alias>rm -rf ; rm -rf /"),
        ("alias x='a; b'; x", "? alias \"x=a; b\" ; alias>a ; alias>b ; x"),
    ]);
}

#[test]
fn assignments_are_reported() {
    check(&[
        ("FOO=1 git push", "FOO=1 git push"),
        ("A=1 B='2 3' c d=e", "A=1 B=2 3 c d=e"),
        ("A=$HOME b", "A=$HOME b"),
        ("A=1", ""),
        ("A+=1 b", "A=1 b"),
        ("1A=1 b", "1A=1 b"),
    ]);
    assert_eq!(only("A=1 B='2 3' c").assignments, [("A".into(), "1".into()), ("B".into(), "2 3".into())]);
}

#[test]
fn flags_and_operands_are_told_apart() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("git push --force", &["force"], &["f", "force-with-lease"]),
        ("git push --force-with-lease=a", &["force-with-lease"], &["force", "f"]),
        ("git push -uf origin", &["u", "f"], &["force", "o"]),
        ("rm --recurs x", &["recursive"], &["r"]),
        ("rm --re x", &[], &["recursive"]),
        ("rm -- -rf --force", &[], &["r", "f", "force"]),
        ("find . -delete", &["delete"], &["del"]),
        ("a --bb=c - -", &["bb"], &["c", "-", ""]),
    ];
    for (text, has, has_not) in rows {
        let command = only(text);
        assert!(has.iter().all(|flag| command.has_flag(flag)), "{text}");
        assert!(has_not.iter().all(|flag| !command.has_flag(flag)), "{text}");
    }
    assert_eq!(only("git push -u origin -- --main -").operands(), ["push", "origin", "--main", "-"]);
    assert_eq!(only("/usr/bin/git  push 'a  b'").text(), "git push a  b");
    assert_eq!(only("/usr/bin/git push").path, "/usr/bin/git");
}
