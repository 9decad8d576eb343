"""Bugs of requests, reloads and the end of the process."""

from tests.simulation.bugs.bug import bug

_REGISTRY = "registry/registry.py"
_DEADLINE = "http/middleware/deadline.py"
_REQUEST_ID = "http/middleware/request_id.py"

REQUESTS = (
    bug(
        "known: a deadline that meets a failure is lost",
        "concurrency.py",
        """    tasks = [asyncio.create_task(coroutine) for coroutine in pending]
    try:
""",
        """    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in pending]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0]
    try:
""",
        _DEADLINE,
        "    def send(self, message: Message) -> Awaitable[None]:",
        "    async def send(self, message: Message) -> None:",
        _DEADLINE,
        "            raise TimeoutError\n",
        "            await asyncio.Future()\n",
        _DEADLINE,
        "        return self._send(message)",
        "        await self._send(message)",
    ),
    bug(
        "known: a body after a reload meets the closed model",
        "api/task_call.py",
        "    body = await request.body()\n",
        "    name = request.path_params.get('name')\n"
        "    served = request.scope['route'].find_model(request.app, name)\n"
        "    body = await request.body()\n",
        "api/task_call.py",
        '    served = route.find_model(request.app, request.path_params.get("name"))\n',
        "",
    ),
    bug(
        "strangers count as load",
        "api/task_route.py",
        """            except OverloadedError:
""",
        """            except OverloadedError:
                served.batcher._admission._accepted[self.bulk] += 1
""",
    ),
    bug(
        "a deadline is a second late",
        _DEADLINE,
        "            deadline_s = asyncio.get_running_loop().time() + self._limit_s\n",
        "            deadline_s = asyncio.get_running_loop().time() + self._limit_s + 1\n",
    ),
    bug(
        "a deadline is a millisecond early",
        _DEADLINE,
        "            deadline_s = asyncio.get_running_loop().time() + self._limit_s\n",
        "            deadline_s = asyncio.get_running_loop().time() + self._limit_s - 0.001\n",
    ),
    bug(
        "a deadline does not reset after the body",
        _DEADLINE,
        "            if not 0 <= deadline_s - (self._timeout.when() or 0) < _TOLERANCE_S:\n",
        "            if False:\n",
    ),
    bug(
        "an error after the deadline hides it",
        _DEADLINE,
        "            if not timeout.expired():\n                raise\n",
        "            raise\n",
    ),
    bug(
        "a started response gets an error as well",
        _REQUEST_ID,
        "            if not started:",
        "            if True:",
    ),
    bug(
        "a cancelled request gets no response",
        _REQUEST_ID,
        """            await fail(error_response(503, message))
""",
        """            raise
""",
    ),
    bug(
        "a large request keeps some of its memory",
        "http/memory_budget.py",
        "        self._budget.held_bytes -= self._counted_bytes",
        "        self._budget.held_bytes -= min(self._counted_bytes, 2**16)",
    ),
    bug(
        "a failed request keeps its model in use",
        "concurrency.py",
        """        self._count -= 1
""",
        """        if _[0] is not None:
            return
        self._count -= 1
""",
    ),
    bug(
        "a reload forgets the other models",
        _REGISTRY,
        "        by_path = self._by_path | {path: model}\n",
        "        by_path = {path: model}\n"
        "        by_path = by_path if self._by_served_name else self._by_path | by_path\n",
    ),
    bug(
        "an old model stays",
        _REGISTRY,
        "            _run_in(self._retiring, old.retire())",
        "            old.info",
    ),
    bug(
        "an old model closes while it is in use",
        "registry/served_model.py",
        "        await self.in_use.wait_until_unused()\n",
        "",
    ),
    bug(
        "a failed reload ends all later ones",
        _REGISTRY,
        """        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
""",
        """        except Exception as error:
""",
        "registry/load_errors.py",
        "    except BaseException as error:\n",
        "    except Exception as error:\n",
    ),
    bug(
        "a refused model stays loaded",
        "registry/loader.py",
        "        closing.callback(runtime.close)\n",
        "",
    ),
    bug(
        "SIGTERM does not end the process",
        "serve.py",
        "    server.should_exit = True\n\n\ndef _bind",
        "    server.should_exit = health.failed\n\n\ndef _bind",
    ),
    bug(
        "a failure ends the process like a stop",
        "observability/health.py",
        "        self._failed = True\n",
        "",
    ),
    bug(
        "a probe without an answer fails for ever",
        "engine/probe.py",
        "        self._running = None\n",
        "",
    ),
)
