//go:build unix

package redistest

import "syscall"

// Pause stops the process (SIGSTOP). Connections stay open, and nothing is answered.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (s *Server) Continue() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.t.Fatalf("%v: the server does not run", sig)
	}
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatalf("%v: %v", sig, err)
	}
}
