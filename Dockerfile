# One image for all roles: `serve`, `work` and `migrate` are arguments of its one program.
FROM rust:1.95-slim-bookworm AS build
# For jemalloc, the allocator.
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY .sqlx .sqlx
COPY proto proto
COPY migrations migrations
COPY crates crates
# The caches outlive a change of the sources; the program is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin sudoku-batch \
    && cp target/release/sudoku-batch /sudoku-batch

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --no-create-home sudoku
COPY --from=build /sudoku-batch /usr/local/bin/sudoku-batch
USER sudoku
ENTRYPOINT ["sudoku-batch"]
CMD ["--help"]
