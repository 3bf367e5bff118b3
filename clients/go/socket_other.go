//go:build !unix

package hookyard

// checkSocket refuses every socket: here nobody can tell whose it is.
func checkSocket(path string) *Problem {
	message := "nobody can tell whose the socket " + path + " is on this system"
	return &Problem{ErrUntrustedSocket.Code, message, "use the URL of a daemon", RetryNever, 0, nil}
}
