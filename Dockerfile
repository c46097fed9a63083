# A static binary in an image that holds nothing else but the certificates of
# public authorities, run by a user without a name. With its version, which the
# repository cannot tell here:
#
#   docker build --build-arg VERSION=1.2.3 --build-arg COMMIT="$(git rev-parse HEAD)" \
#     --build-arg COMMIT_DATE="$(git log -1 --format=%cI)" -t observerd:1.2.3 .
#
# It needs BuildKit, which docker has had by default since 23.0, or buildah.
ARG GO_VERSION=1.26.8

# Always the machine that builds: Go compiles for the other one by itself.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
# What the image has of folders: /state is what /var/lib/observerd begins with.
RUN install -d /rootfs/var/lib && install -d -m 0700 /state
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ARG COMMIT=unknown
ARG COMMIT_DATE=unknown
# What Go downloads and compiles outlives the layers, so that a change of one
# file compiles one package and not the module proxy's whole share again.
ENV GOCACHE=/go/build
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/build \
    GOOS="$TARGETOS" GOARCH="$TARGETARCH" make build VERSION="$VERSION" COMMIT="$COMMIT" COMMIT_DATE="$COMMIT_DATE"

# Time zones are in the binary. Whose certificates to trust is not.
FROM scratch
ARG VERSION=dev
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="observerd" \
      org.opencontainers.image.description="Turns rows of databases that others own into durable events" \
      org.opencontainers.image.source="https://github.com/observerd/observerd" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.documentation="https://github.com/observerd/observerd/blob/main/docs/installation.md" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# The parents first, or the owner of the state would own them too.
COPY --from=build /rootfs/ /
COPY --from=build --chown=65532:65532 /state /var/lib/observerd
COPY --from=build /src/bin/observerd /usr/local/bin/observerd
USER 65532:65532
# All that may be written: the SQLite files and sinks of a configuration with
# relative paths. The rest of the file system can be read-only.
WORKDIR /var/lib/observerd
VOLUME /var/lib/observerd
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
  CMD ["/usr/local/bin/observerd", "--config", "/etc/observerd/config.yaml", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/observerd", "--config", "/etc/observerd/config.yaml"]
CMD ["run"]
