"""What a checkpoint leaves on the disk: for its owner alone, whole or not at all, and gone at the end."""

from __future__ import annotations

import errno
import os
import pickle
import random
import stat
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch

from sklearn_dpsearch._disk.durable import START, write_whole
from sklearn_dpsearch._disk.secret_folder import LOCK, README, RELEASE
from sklearn_dpsearch._disk.store import opened
from sklearn_dpsearch.nets.estimators import cost
from sklearn_dpsearch.nets.resuming import TRAINING, TrainingCheckpoint
from sklearn_dpsearch.privacy import PrivacyError

from .crashes import POSIX, SEEDED, STATE, X, cut_off, parameters, table_net, y
from .toys import Untouchable

#: Where a checkpoint is written before it takes its place.
NEW = STATE + ".new"


@POSIX
def test_the_folder_is_for_its_owner_alone_and_says_what_it_is(tmp_path):
    before = os.umask(0)
    try:
        cut_off(table_net, tmp_path / "deep" / "checkpoint")
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "checkpoint"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {STATE, README} <= {file.name for file in folder.iterdir()} <= {STATE, README, LOCK}
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert "as secret as the private records" in (folder / README).read_text()


@POSIX
def test_an_empty_folder_of_the_users_own_is_closed_to_others(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    cut_off(table_net, tmp_path / "mine")
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700


@POSIX
def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(PrivacyError, match="(?s)belongs to another user.*folder of your own"):
        table_net(checkpoint=tmp_path / "theirs").fit(X, y)


def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    mode = tmp_path.stat().st_mode
    with pytest.raises(PrivacyError, match="(?s)thesis.tex.*folder of its own.*empty"):
        table_net(checkpoint=tmp_path).fit(X, y)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    assert tmp_path.stat().st_mode == mode


def test_a_file_in_which_any_bit_has_changed_is_refused(tmp_path):
    cut_off(table_net, tmp_path / "c")
    file = tmp_path / "c" / STATE
    whole = file.read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 60):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(PrivacyError, match="damaged"):
            table_net(checkpoint=tmp_path / "c").fit(X, y)
    file.write_bytes(whole)
    table_net(checkpoint=tmp_path / "c").fit(X, y)


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path):
    (tmp_path / "model.pt").write_text("trained")
    with pytest.raises(PrivacyError, match="(?s)Found a file.*a folder is needed"):
        table_net(checkpoint=tmp_path / "model.pt").fit(Untouchable(), Untouchable())
    assert (tmp_path / "model.pt").read_text() == "trained"


def test_a_file_that_was_half_written_when_the_power_failed_is_not_read(tmp_path):
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    cut_off(make, tmp_path / "c")
    (tmp_path / "c" / NEW).write_bytes(b"half a")
    found = make(checkpoint=tmp_path / "c").fit(X, y)
    assert torch.equal(parameters(found), parameters(make().fit(X, y)))


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no way to write a checkpoint"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "c").exists()


@POSIX
def test_a_checkpoint_has_reached_the_disk_before_it_takes_the_place_of_the_last(tmp_path, monkeypatch):
    """Or a power cut could leave the new name with nothing behind it."""
    asked = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (asked.append((name, args)), real(*args)))
    with opened(tmp_path / "c", TRAINING) as store:
        store.bind({})
        for name, write in ((STATE, store.begin), (RELEASE, store.file().write)):
            asked.clear()
            write(b"secrets")
            assert [call for call, _ in asked] == ["fsync", "replace", "fsync"]
            assert asked[1][1] == (tmp_path / "c" / f"{name}.new", tmp_path / "c" / name)


def test_a_file_may_not_bring_code_along(tmp_path):
    cut_off(table_net, tmp_path / "c")

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    header = (tmp_path / "c" / STATE).read_bytes()[START:].partition(b"\n")[0]
    write_whole(tmp_path / "c" / STATE, header + b"\n" + pickle.dumps(Evil()))
    with pytest.raises(Exception, match="(?i)weights.only"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "evil").exists()


def test_secrets_that_cannot_be_deleted_are_an_error_and_the_training_can_be_repeated(tmp_path, monkeypatch):
    """Nobody should believe that they are gone."""
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    one, unlink = make(checkpoint=tmp_path / "c"), Path.unlink

    def failing(self, **kwargs):
        if self.name == STATE:
            raise PermissionError(errno.EACCES, "no")
        unlink(self, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing)
        patch.setattr(TrainingCheckpoint, "keep", lambda checkpoint, task: None)  # which would write over them
        with pytest.raises(PermissionError):
            one.fit(X, y)
    assert not hasattr(one, "module_")
    assert torch.equal(parameters(one.fit(X, y)), parameters(make().fit(X, y)))


def test_a_training_that_never_began_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="inconsistent"):
        table_net(checkpoint=tmp_path / "c").fit(np.zeros((80, 5)), y[1:])
    assert not (tmp_path / "c").exists()


def test_a_training_that_fails_at_its_very_end_leaves_its_checkpoint(tmp_path, monkeypatch):
    """Until the net is fitted nothing is deleted."""
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "add_training", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(checkpoint=tmp_path / "c").fit(X, y)
    assert (tmp_path / "c" / STATE).exists()
    assert torch.equal(parameters(make(checkpoint=tmp_path / "c").fit(X, y)), parameters(make().fit(X, y)))


@POSIX
def test_secrets_are_not_written_through_a_link(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / NEW).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="no way to write a checkpoint"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_use_is_refused(tmp_path):
    with (
        opened(tmp_path / "c", TRAINING),
        pytest.raises(PrivacyError, match="(?s)is running.*folder of its own.*'lock'"),
    ):
        table_net(checkpoint=tmp_path / "c").fit(Untouchable(), Untouchable())
    table_net(checkpoint=tmp_path / "c").fit(X, y)
