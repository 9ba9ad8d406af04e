# Hero in a container. Build: docker build -t hero .   Run: docker run -v hero:/data --env-file hero.env hero
# /data holds hero.toml, runs/ and the database.

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/build && python -m venv /opt/hero
COPY requirements.lock requirements-build.lock ./
RUN /opt/hero/bin/pip install --require-hashes --only-binary=:all: -r requirements.lock \
    && /opt/build/bin/pip install --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY handlers handlers
COPY checks checks
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/hero/bin/pip install --no-deps --no-index /dist/*.whl \
    && /opt/hero/bin/pip uninstall --yes pip

FROM python:3.12-slim
# The checkouts of runs are read with git, and fetched over https or ssh. Debian keeps one version of a package, the one
# with the newest security fixes: a pinned one would be gone from its mirrors at the next fix, and the build with it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# A fixed number, so that the owner of a mounted directory can be set beforehand: chown 10001:10001.
RUN groupadd --gid 10001 hero \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin hero \
    && install --directory --owner=10001 --group=10001 --mode=0750 /data
COPY --from=build /opt/hero /opt/hero
# Inside a container 127.0.0.1 is out of everyone's reach, so the bot listens on all of its addresses.
ENV PATH="/opt/hero/bin:$PATH" PYTHONUNBUFFERED=1 HERO_BOT__HTTP=0.0.0.0:8080
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8080
# Asks the bot itself, at the port it was told to listen on, and through no proxy.
HEALTHCHECK --interval=30s --timeout=6s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['HERO_BOT__HTTP'].rpartition(':')[2] + '/healthz', timeout=5)"]
# Exec form, so that Hero is process 1 and gets the signal: it finishes its transaction and exits 0 within 10 s.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hero"]
CMD ["run"]
