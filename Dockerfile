# flowstart in a container:
#   docker build -t flowstart .
#   docker run --rm -v "$PWD:/work" flowstart compare
#
# Simulating needs nothing. `emulate` makes network namespaces and needs --cap-add NET_ADMIN
# --cap-add NET_RAW --cap-add SYS_ADMIN --security-opt apparmor=unconfined; `kernel` loads into the
# host's kernel and needs --privileged.
FROM rust:1-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends clang libelf-dev zlib1g-dev pkg-config make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p flowstart --features kernel,parquet,quic

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libelf1 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/flowstart /usr/local/bin/flowstart
COPY --from=build /src/LICENSE-MIT /src/LICENSE-APACHE /usr/share/doc/flowstart/
WORKDIR /work
ENTRYPOINT ["flowstart"]
CMD ["compare"]
