# The serving image: what service/ imports, service/ and its built-in model. No torch, no model/, no export/.
#   docker build --tag fillmask . && docker run --read-only --stop-timeout 40 --publish 127.0.0.1:8000:8000 fillmask
# The image also has the command that needs no server:
#   docker run --rm --entrypoint python fillmask -m service.cli "Paris is the [MASK] of France."
#
# Python 3.11 is what the tests run on and constraints/serve.txt was resolved for; trixie is Debian's stable release.
# Patch levels float, so that a rebuild takes both projects' security fixes.
FROM python:3.11-slim-trixie AS python


FROM python AS dependencies
WORKDIR /build
# Dependencies without the code, so that a change of code reinstalls nothing. tokenizers requires the client of the
# Hugging Face hub, which the service never imports: uninstalling its dependencies saves 20 MB and all code that downloads.
COPY pyproject.toml constraints/serve.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > requirements.txt \
    && python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --disable-pip-version-check --no-compile --only-binary :all: \
        --requirement requirements.txt --constraint serve.txt \
    && pip --python /opt/venv/bin/python uninstall --disable-pip-version-check --yes \
        filelock fsspec hf-xet httpcore2 httpx2 huggingface-hub pyyaml truststore \
    && find /opt/venv -type d -name tests -prune -exec rm -r {} +


FROM python AS code
WORKDIR /app
COPY LICENSE ./
COPY service/ service/
# The built-in model has its own layer, which a change of code leaves alone.
# The image's user could not read a checkout made under a strict umask.
RUN chmod -R a+rX . \
    && mv service/bundles/default /default_bundle


FROM python
# The running image installs nothing.
RUN ["python", "-B", "-m", "pip", "uninstall", "--yes", "--root-user-action", "ignore", "setuptools", "wheel", "pip"]
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=code /default_bundle /app/service/bundles/default
COPY --from=code /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH
# Bytecode of every module that a start of the service or the command imports, and of no other. The base image has none
# of the standard library's, and a read-only root cannot store it.
RUN ["python", "-c", "import service.__main__, service.serve, service.cli.__main__"]
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FILLMASK_HOST=0.0.0.0 \
    FILLMASK_PORT=8000
EXPOSE 8000
# A number, because Kubernetes checks by number that the user is not root.
USER 65532:65532
# There is no curl in the image; http.client, unlike urllib, ignores proxy variables.
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['FILLMASK_PORT']), timeout=2); c.request('GET', '/health/ready'); raise SystemExit(c.getresponse().status != 200)"]
# Without a shell SIGTERM reaches the service, which finishes accepted requests and exits with 0.
ENTRYPOINT ["python", "-m", "service"]
CMD []
# Last, so that a new version number leaves the layers alone.
LABEL org.opencontainers.image.title="fillmask" \
      org.opencontainers.image.description="A small, fast, self-hosted fill-mask service for BERT-family models on CPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-trixie"
