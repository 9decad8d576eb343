# The last stage is the serving image. It contains service/, its dependencies and the built-in model, but no torch,
# model/ or export/.
#   docker build --tag fillmask . && docker run --read-only --stop-timeout 40 --publish 127.0.0.1:8000:8000 fillmask
# The image also has the command `fillmask`, which needs no server:
#   docker run --rm --entrypoint python fillmask -m fillmask.cli "Paris is the [MASK] of France."
#
# The tests and constraints/serve.txt use Python 3.11. trixie is Debian's stable release. The tag has no patch level, so
# that a rebuild includes the security fixes of both projects.
FROM python:3.11-slim-trixie AS python


FROM python AS dependencies
WORKDIR /build
# This stage copies no code, so that a change of code reinstalls nothing. tokenizers requires the client of the Hugging
# Face hub, which the service never imports. Without this client and its dependencies the image is 20 MB smaller. It
# then has no code that downloads files.
COPY pyproject.toml constraints/serve.txt ./
# Extras of pyproject.toml, such as parquet,otel. Parquet files make the image 172 MB larger.
ARG EXTRAS=
RUN --mount=type=cache,target=/root/.cache/pip \
    python -c "import os, tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *sum((p['optional-dependencies'][e] for e in os.environ['EXTRAS'].split(',') if e), []), sep='\n')" \
        > requirements.txt \
    && python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --disable-pip-version-check --no-compile --only-binary :all: \
        --requirement requirements.txt --constraint serve.txt \
    && pip --python /opt/venv/bin/python uninstall --disable-pip-version-check --yes \
        filelock fsspec hf-xet httpcore2 httpx2 huggingface-hub pyyaml truststore \
    && find /opt/venv -type d -name tests -prune -exec rm -r {} +


# The fused int8 operators, built by the clang in PyPI's ziglang. Nothing else of this stage reaches an image. Without a
# target, clang in ziglang uses all instructions of the machine that builds the image, which other machines may lack.
FROM python AS native
WORKDIR /build
COPY constraints/native.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --disable-pip-version-check --root-user-action ignore --requirement native.txt
COPY native/ native/
RUN CXX="python -m ziglang c++ -target $(uname -m)-linux-gnu" cmake -G Ninja -S native -B objects \
    && cmake --build objects \
    && cmake --install objects --prefix /native --strip \
    && cp native/fillmask_native/__init__.py /native/fillmask_native/ \
    && chmod -R a+rX /native


FROM python AS code
WORKDIR /app
COPY LICENSE ./
COPY service/fillmask/ fillmask/
# The built-in model has its own layer, so that a change of code does not change this layer.
# chmod makes the files of a checkout with a strict umask readable for the image's user.
RUN chmod -R a+rX . \
    && mv fillmask/bundles/default /default_bundle


# The image of `docker compose run export`, which makes bundles from checkpoints. `docker build` builds it only with
# `--target export`.
FROM python AS export
WORKDIR /app
COPY pyproject.toml constraints/dev.txt /build/
# uv installs PyTorch's build for CPUs, which is several GB smaller than the build for GPUs. The empty value selects the
# build of your own package index.
ARG TORCH_BACKEND=cpu
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=cache,target=/root/.cache/uv \
    cd /build \
    && python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *p['optional-dependencies']['train'], sep='\n')" \
        > requirements.txt \
    && pip install --disable-pip-version-check --root-user-action ignore uv==0.13.9 \
    && uv pip install --system --only-binary :all: ${TORCH_BACKEND:+--torch-backend "$TORCH_BACKEND"} \
        --requirement requirements.txt --constraint dev.txt \
    && rm -r /build \
    && mkdir --mode 1777 /cache
COPY --from=code /app /app
COPY model/fillmask_model/ fillmask_model/
COPY export/fillmask_export/ fillmask_export/
COPY --from=native /native/fillmask_native fillmask_native/
RUN chmod -R a+rX .
# Every user can write to the cache of downloaded models.
ENV HF_HOME=/cache \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["python", "-m", "fillmask_export"]
CMD []


FROM python
# The running image installs no packages.
RUN ["python", "-B", "-m", "pip", "uninstall", "--yes", "--root-user-action", "ignore", "setuptools", "wheel", "pip"]
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=code /default_bundle /app/fillmask/bundles/default
COPY --from=code /app /app
COPY --from=native /native/fillmask_native /app/fillmask_native
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH
# Writes the bytecode of every module that the start of the service or of the command imports. The base image has no
# bytecode of the standard library. A read-only root cannot store bytecode.
RUN ["python", "-c", "import fillmask.__main__, fillmask.serve, fillmask.cli.__main__, fillmask.health_check"]
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FILLMASK_HOST=:: \
    FILLMASK_PORT=8000
EXPOSE 8000
# Kubernetes needs a number to check that the user is not root.
USER 65532:65532
# Asks the address and the port of the flags, or else of the variables.
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-m", "fillmask.health_check"]
# Without a shell, SIGTERM reaches the service. The service then finishes the accepted requests and exits with code 0.
ENTRYPOINT ["python", "-m", "fillmask"]
CMD []
# The label is last, so that a new version number does not change the other layers.
LABEL org.opencontainers.image.title="fillmask" \
      org.opencontainers.image.description="A small, fast, self-hosted fill-mask service for BERT-family models on CPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-trixie"
