package file

import "os"

// FailSync has every sync fail until err is nil again.
func (s *Sink) FailSync(err error) {
	s.sync = func(f *os.File) error {
		if err != nil {
			return err
		}
		return f.Sync()
	}
}
