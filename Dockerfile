# A static binary in an image that holds nothing else, run by nobody in
# particular. Build it with the version: docker build --build-arg VERSION=1.2.3 .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN make build VERSION="$VERSION" \
 && mkdir -p /empty/var/lib/observerd

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/observerd /usr/local/bin/observerd
# The working folder is writable, for the SQLite files and sinks of a
# configuration with relative paths. Mount a volume there to keep them.
COPY --from=build --chown=65532:65532 /empty/var/lib/observerd /var/lib/observerd
WORKDIR /var/lib/observerd
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/observerd"]
CMD ["run", "--config", "/etc/observerd/config.yaml"]
