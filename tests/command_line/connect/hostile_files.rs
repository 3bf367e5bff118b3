//! Records, projects and locks that somebody else may have written.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    fs::{CWD, FileType, Mode, mkfifoat, mknodat},
    process::geteuid,
};

use super::{Home, SETTINGS};

#[test]
fn a_record_that_cannot_be_trusted_is_neither_used_nor_overwritten() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 15] = [
        ("it is damaged", |file| fs::write(file, "{").unwrap()),
        ("it is damaged", |file| fs::write(file, "").unwrap()),
        ("it is damaged", |file| fs::write(file, &fs::read(file).unwrap()[..60]).unwrap()),
        ("it is damaged", |file| {
            fs::write(file, "{\"version\":1,\"version\":1,\"connections\":[]}").unwrap();
        }),
        ("it is damaged", |file| fs::write(file, "{\"version\":1,\"connections\":[],\"more\":1}").unwrap()),
        ("its version is 9", |file| fs::write(file, "{\"version\":9,\"later\":[]}").unwrap()),
        ("others may read or write it", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("others may read or write it", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o620)).unwrap();
        }),
        ("others may write to it", |file| {
            fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("it is a symbolic link", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            symlink(file.with_extension("old"), file).unwrap();
        }),
        ("it is a symbolic link", |file| {
            let directory = file.parent().unwrap();
            fs::rename(directory, directory.with_extension("old")).unwrap();
            symlink(directory.with_extension("old"), directory).unwrap();
        }),
        ("it has another name", |file| fs::hard_link(file, file.with_extension("twin")).unwrap()),
        ("it is no regular file", |file| {
            fs::remove_file(file).unwrap();
            mknodat(CWD, file, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        }),
        ("it is no regular file", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
        // Only root can give a file away.
        ("it belongs to another user", |file| drop(chown(file, Some(65534), None))),
    ];
    for (why, spoil) in spoils {
        if why == "it belongs to another user" && !geteuid().is_root() {
            continue;
        }
        let home = Home::new();
        let file = home.write(".claude/settings.json", SETTINGS);
        home.run(&["connect", "claude"]);
        let connected = fs::read_to_string(&file).unwrap();
        let record = home.path(".local/state/hookyard/connections.json");
        spoil(&record);
        // Reading a FIFO would wait.
        let content = || record.is_file().then(|| fs::read(&record).unwrap());
        let before = content();
        for command in ["connect", "disconnect"] {
            let done = home.run(&[command, "claude"]);
            assert_eq!(done.code, Some(1), "{command}, {why}: {done:?}");
            let is_said =
                done.err.contains("the record of connections cannot be used") && done.err.contains(why);
            assert!(is_said, "{command}, {why}: {done:?}");
            assert_eq!(content(), before, "{command}, {why}");
            assert_eq!(fs::read_to_string(&file).unwrap(), connected, "{command}, {why}");
        }
    }
}

#[test]
fn a_hostile_project_has_nothing_outside_of_it_changed_and_nothing_written_to_the_terminal() {
    type Plant = fn(&Home, &Path);
    let plants: [(&str, Plant); 6] = [
        ("outside of", |home, file| symlink(home.path("outside.json"), file).unwrap()),
        ("outside of", |home, file| {
            fs::remove_dir(file.parent().unwrap()).unwrap();
            fs::create_dir(home.path("elsewhere")).unwrap();
            symlink(home.path("elsewhere"), file.parent().unwrap()).unwrap();
        }),
        ("a hard link", |home, file| fs::hard_link(home.path("outside.json"), file).unwrap()),
        ("not a regular file", |_, file| mknodat(CWD, file, FileType::Fifo, Mode::from(0o600), 0).unwrap()),
        ("not a regular file", |_, file| fs::create_dir(file).unwrap()),
        ("larger than", |_, file| fs::File::create(file).unwrap().set_len(300 << 20).unwrap()),
    ];
    for (why, plant) in plants {
        let home = Home::new();
        let project = home.path("shop\u{1b}[2J\nx");
        let file = project.join(".claude/settings.local.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let outside = home.write("outside.json", "{}");
        plant(&home, &file);
        let project = project.to_str().unwrap();
        for command in ["connect", "disconnect"] {
            let done = home.run(&[command, "claude", "--project", project]);
            let text = [done.out.as_str(), &done.err].concat();
            assert!(!text.contains('\u{1b}'), "{command}, {why}: {text}");
            let is_refused = done.code == Some(1) && done.err.contains(why);
            // A file without entries is left as it is.
            assert!(is_refused || command == "disconnect", "{command}, {why}: {done:?}");
            assert_eq!(fs::read_to_string(&outside).unwrap(), "{}", "{command}, {why}");
            let elsewhere = home.path("elsewhere").read_dir().map(Iterator::count);
            assert_eq!(elsewhere.unwrap_or_default(), 0, "{command}, {why}");
        }
        let done = home.run(&["doctor", "--workspace", project]);
        assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "{why}: {done:?}");
        assert_eq!(home.state(), Vec::<PathBuf>::new(), "{why}");
    }
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    let directory = home.path(".local/state/hookyard");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(home.path("elsewhere"), directory.join("connections.lock")).unwrap();
    let done = home.run(&["connect", "claude"]);
    assert!(done.code == Some(1) && done.err.contains("connections.lock"), "{done:?}");
    assert!(!home.path("elsewhere").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
}

#[test]
fn a_directory_that_is_swapped_for_a_link_has_nothing_written_to_where_it_leads() {
    let hooks = "{\"hooks\":{\"BeforeTool\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"evil.sh\"}]}]}}";
    for (verb, step) in
        [("connect", "recorded"), ("connect", "written"), ("connect", "moved"), ("disconnect", "written")]
    {
        let home = Home::new();
        home.write("shop/.gemini/settings.json", hooks);
        let project = home.path("shop");
        let adopting = ["connect", "gemini", "--adopt", "--project", project.to_str().unwrap()];
        let undoing = ["disconnect", "gemini", "--project", project.to_str().unwrap()];
        if verb == "disconnect" {
            home.run(&adopting);
        }
        fs::create_dir(home.path(".gemini")).unwrap();
        let pause = home.path("pause");
        mkfifoat(CWD, &pause, Mode::RUSR | Mode::WUSR).unwrap();
        let mut command = home.command(if verb == "connect" { &adopting[..] } else { &undoing });
        command.env("HOOKYARD_TEST_PAUSE", step).env("HOOKYARD_TEST_PAUSE_AT", &pause);
        let running = thread::spawn(move || command.output().unwrap());
        // Opens once the program waits at the other end.
        let paused = File::options().write(true).open(&pause).unwrap();
        fs::rename(project.join(".gemini"), project.join(".former")).unwrap();
        symlink(home.path(".gemini"), project.join(".gemini")).unwrap();
        // Each file that is written waits.
        drop(paused);
        while !running.is_finished() {
            drop(rustix::fs::open(
                &pause,
                rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK,
                Mode::empty(),
            ));
            thread::yield_now();
        }
        let done = running.join().unwrap();
        let outside: Vec<_> = home.path(".gemini").read_dir().unwrap().flatten().collect();
        assert!(outside.is_empty(), "{verb} {step}: {outside:?} {done:?}");
        assert_eq!(home.run(&["disconnect", "gemini"]).code, Some(0), "{verb} {step}");
        assert!(!home.path(".gemini/settings.json").exists(), "{verb} {step}");
    }
}
