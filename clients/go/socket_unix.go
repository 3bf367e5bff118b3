//go:build unix

package hookyard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const writableByOthers fs.FileMode = 0o022

// checkSocket returns a Problem if another user could have put the socket there: its daemon would decide in the place of
// ours.
func checkSocket(path string) *Problem {
	socket, err := filepath.EvalSymlinks(path)
	if err == nil {
		socket, err = filepath.Abs(socket)
	}
	if err != nil {
		return down(path, reason(err))
	}
	directory := filepath.Dir(socket)
	file, err := os.Lstat(socket)
	if err != nil {
		return down(path, reason(err))
	}
	above, err := os.Lstat(directory)
	if err != nil {
		return down(path, reason(err))
	}
	trusted := map[uint32]bool{0: true, uint32(os.Geteuid()): true}
	// As with /run/hookyard: root has made the directory for the daemon's user.
	if areOfRoot(filepath.Dir(directory)) {
		if isOfRoot(above) {
			trusted[owner(file)] = true
		} else {
			trusted[owner(above)] = true
		}
	}
	fault := ""
	if !trusted[owner(file)] {
		fault = fmt.Sprintf("belongs to the user %d", owner(file))
	}
	if !trusted[owner(above)] {
		fault = fmt.Sprintf("is in a directory of the user %d", owner(above))
	}
	if above.Mode()&writableByOthers != 0 && above.Mode()&fs.ModeSticky == 0 {
		fault = "is in a directory that others can write to"
	}
	if fault == "" {
		return nil
	}
	message := fmt.Sprintf("the socket %s %s", path, fault)
	return &Problem{ErrUntrustedSocket.Code, message, "use a socket in a directory of your own, or of root", RetryNever, 0, nil}
}

func owner(file fs.FileInfo) uint32 {
	// Of every system that has the owners of files.
	return file.Sys().(*syscall.Stat_t).Uid
}

func isOfRoot(file fs.FileInfo) bool { return owner(file) == 0 && file.Mode()&writableByOthers == 0 }

// areOfRoot says whether root alone decides about a directory and all above it.
func areOfRoot(directory string) bool {
	file, err := os.Lstat(directory)
	if err != nil || !isOfRoot(file) {
		return false
	}
	parent := filepath.Dir(directory)
	return parent == directory || areOfRoot(parent)
}
