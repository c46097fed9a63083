#!/bin/sh
# Before the files of the deb or rpm are unpacked: makes the user that some of
# them belong to. The same line stands in sysusers.d, for systems that make their
# users at boot.
set -e

if ! id -u observerd >/dev/null 2>&1; then
  if command -v systemd-sysusers >/dev/null; then
    echo 'u observerd - "observerd daemon" /var/lib/observerd -' |
      systemd-sysusers --replace=/usr/lib/sysusers.d/observerd.conf -
  else
    getent group observerd >/dev/null || groupadd --system observerd
    useradd --system --gid observerd --home-dir /var/lib/observerd --no-create-home \
      --shell /usr/sbin/nologin --comment "observerd daemon" observerd
  fi
fi

# dpkg does not tell postinst that an earlier version was removed in between:
# then the service is to be started, and not only restarted if it runs. (rpm
# calls this with a number.)
if [ "$1" = install ] && [ -d /run/systemd/system ]; then
  : >/run/observerd.installing
fi
