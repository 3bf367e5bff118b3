//! The path that trust is given to: its spellings, and links in its place.

use super::*;

#[test]
fn however_its_path_is_written_a_workspace_is_the_same() {
    let place = Place::new();
    place.trust(&[]);
    let shop = place.path("shop").to_str().unwrap().to_owned();
    let parent = place.path("").to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("shop", place.path("link")).unwrap();
    for path in [
        format!("{shop}/"),
        format!("{shop}//."),
        format!("{parent}/.//shop"),
        format!("{shop}/../shop/"),
        format!("{parent}/link/"),
        ".".to_owned(),
        "./".to_owned(),
        "../link/../shop/".to_owned(),
    ] {
        // In the settings, a path is absolute.
        let declared =
            path.starts_with('/').then(|| format!("workspaces: {{ front: {{ root: '{path}' }} }}\n"));
        for settings in [String::new()].into_iter().chain(declared) {
            place.write("settings.yaml", &settings);
            let config = place.path("settings.yaml");
            let arguments = ["--workspace", &path, "--config", config.to_str().unwrap()];
            let outcome = place.fire_with("Bash", &arguments);
            assert_eq!(ended(&outcome), ("block", "completed"), "{path}, {settings}: {outcome}");
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_workspace_is_an_error_of_every_command_until_trust_is_taken_back() {
    let place = Place::new();
    place.trust(&[]);
    let own = GUARD.replace("name: guard", "name: own").replace("on_error: deny\n", "");
    place.write("other/.openharness/hooks/own.yaml", &own);
    fs::rename(place.path("shop"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink("other", place.path("shop")).unwrap();
    let shop = place.path("shop").to_str().unwrap().to_owned();
    let place_is = |arguments: &[&str]| place.run(&[arguments, &["--workspace", &shop]].concat());
    let checked = place_is(&["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    for text in ["error[replaced]", "the trusted hook `guard` does not run", "--revoke"] {
        assert!(checked.out.contains(text), "{text}: {checked:?}");
    }
    let outcome = place.fire_with("Bash", &["--workspace", &shop]);
    let untrusted: Vec<_> = outcome["hooks"].as_array().unwrap().iter().map(|hook| &hook["hook"]).collect();
    assert_eq!((&outcome["verdict"], untrusted.len()), (&json!("block"), 2), "{outcome}");
    let listed = place_is(&["list"]);
    assert!(listed.out.contains("missing"), "{listed:?}");
    let shown = place_is(&["trust", "--list"]);
    assert!(shown.code == 1 && shown.out.starts_with("missing"), "{shown:?}");
    assert_eq!(place_is(&["trust", "--revoke"]).code, 0);
    let checked = place_is(&["check"]);
    assert!(checked.code == 0 && checked.out.contains("nobody has agreed to it"), "{checked:?}");
}
