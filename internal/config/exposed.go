package config

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// checkExposed rejects a password that is written in a configuration that every user of
// the host may read. It checks a file alone, before the environment is merged over it: a
// password without effect is a password too. The key is not marked as wrong, so that its
// other mistakes are reported as well.
func (r reader) checkExposed(p place, text string) {
	if r.exposed && p.value.Type() == reflect.TypeFor[URL]() && dburl.HoldsPassword(withoutVariables(text)) {
		r.RejectAt(r.OriginOf(p.at), p.at, whyExposed(r.in, p.at))
	}
}

func whyExposed(in file, key string) string {
	instead := "write ${NAME} for it, or url-file"
	if strings.HasPrefix(key, "sources.") {
		instead = "write ${NAME} for it, url-file or password-file"
	}
	return fmt.Sprintf("%s holds a password, and every user of this host may read this file (mode %04o); %s, or %s",
		key, in.info.Mode().Perm(), fileowner.Close(in.path, in.info), instead)
}

// warnOfReaders warns of a file that holds a secret and that every user of the
// host may read. It is not a mistake: the mode of a file that is mounted into a
// container often cannot be changed. Container engines themselves put secrets into
// /run/secrets with mode 0444, where it cannot be changed and need not be: there are
// no other users in the container.
func (o Options) warnOfReaders(r *yamlfile.Report, key, name string, info fs.FileInfo) {
	if !o.OthersMayRead(info) || info.Mode().Perm() == 0o444 && strings.HasPrefix(name, "/run/secrets/") {
		return
	}
	r.Warn(key, fmt.Sprintf("the file holds a secret, and every user of this host may read it (mode %04o); %s",
		info.Mode().Perm(), fileowner.Close(name, info)))
}
