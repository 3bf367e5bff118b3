//! Hooks that run in the workspace, where everything beside their scripts counts.

use super::*;

#[test]
fn a_hook_that_was_trusted_in_place_stays_in_place_until_its_trust_is_taken_back() {
    let place = Place::new();
    place.trust(&["--in-place"]);
    assert_eq!(place.run(&["trust", "--list"]).out, "trusted    guard\n");
    assert_eq!(place.run(&["trust"]).code, 0);
    place.write("shop/.openharness/hooks/scripts/lib.sh", "ran() { :; }\n");
    let shown = place.run(&["trust"]);
    assert!(shown.code == 1 && shown.out.contains("runs in the workspace"), "{shown:?}");
    place.run(&["trust", "--revoke"]);
    assert!(place.run(&["trust"]).out.contains("runs from a private copy"));
}

#[test]
fn in_place_everything_that_an_interpreter_opens_beside_a_script_counts() {
    const SCRIPTS: &str = "shop/.openharness/hooks/scripts";
    let changes: [(&str, Change<'_>); 9] = [
        ("modified", &|place| place.write(&format!("{SCRIPTS}/json.py"), "")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/__pycache__/lib.cpython-311.pyc"), "other")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/other.pyc"), "")),
        ("modified", &|place| place.write("shop/common/lib.py", "other")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/cache/__init__.py"), "")),
        ("modified", &|place| {
            std::os::unix::fs::symlink("/usr/lib", place.path(&format!("{SCRIPTS}/json"))).unwrap();
        }),
        ("modified", &|place| {
            std::os::unix::fs::symlink("..", place.path(&format!("{SCRIPTS}/up"))).unwrap();
        }),
        ("trusted", &|place| place.write("shop/.openharness/state/count.json", "2")),
        ("trusted", &|place| place.write("shop/.openharness/guard.log", "2")),
    ];
    for (number, (state, change)) in changes.into_iter().enumerate() {
        let place = Place::new();
        place.write(&format!("{SCRIPTS}/__pycache__/lib.cpython-311.pyc"), "code");
        place.write("shop/.openharness/state/count.json", "1");
        place.write("shop/common/lib.py", "");
        std::os::unix::fs::symlink("../../../common", place.path(&format!("{SCRIPTS}/common"))).unwrap();
        place.trust(&["--in-place"]);
        assert_eq!(place.state(), "trusted");
        change(&place);
        assert_eq!(place.state(), state, "change {number}");
    }
}

#[test]
fn in_place_a_python_script_can_import_everything_beside_it() {
    let place = Place::new();
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &GUARD.replace("sh .openharness/hooks/scripts/guard.sh", "python3 tools/guard.py"),
    );
    place.write("shop/tools/guard.py", "import lib, sys\nsys.exit(lib.code)\n");
    place.write("shop/tools/lib.py", "code = 2\n");
    place.write("shop/tools/README.md", "");
    place.trust(&["--in-place"]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert!(!place.path("shop/tools/__pycache__").exists());
    place.write("shop/tools/README.md", "changed");
    assert_eq!(place.state(), "trusted");
    place.write("shop/tools/selectors.py", "");
    assert_eq!(place.state(), "modified");
}

#[test]
fn links_that_lead_in_circles_or_out_are_refused_in_place_and_left_out_of_a_copy() {
    for target in ["/usr/lib", "..", "../../.."] {
        let place = Place::new();
        let link = place.path("shop/.openharness/hooks/scripts/linked");
        std::os::unix::fs::symlink(target, link).unwrap();
        let shown = place.run(&["trust", "--in-place"]).out;
        assert!(shown.contains("cannot be trusted: ") && shown.contains("linked` is a link"), "{shown}");
        place.trust(&[]);
        assert_eq!(ended(&place.fire()), ("block", "completed"), "{target}");
    }
}

#[test]
fn in_place_is_refused_where_nothing_is_agreed_to() {
    let place = Place::new();
    for other in ["--list", "--revoke"] {
        let shown = place.run(&["trust", "--in-place", other]);
        assert!(shown.code == 2 && shown.err.contains("cannot be used with"), "{other}: {shown:?}");
    }
}
