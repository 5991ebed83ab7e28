"""What a checkpoint leaves on the disk: for its owner alone, whole or not at all, and gone at the
end."""

from __future__ import annotations

import errno
import os
import random
import stat
from pathlib import Path

import numpy as np
import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch._durable import NEW_SUFFIX, PAYLOAD_START, write_whole
from sklearn_dpsearch.privacy import Fixed, PrivacyError
from sklearn_dpsearch.search._checkpoint import Checkpoint
from sklearn_dpsearch.search._checkpoint_folder import (
    LOCK,
    README,
    RELEASE,
    STATE,
    FileOfSearch,
    opened_folder,
)

from .toys import NoisyCentroids, two_blobs

pytestmark = pytest.mark.usefixtures("unrehearsed")
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")
X, y = two_blobs(60)


def search(folder, **more):
    return DPRandomSearchCV(
        NoisyCentroids(), {"shrink": [0.0, 0.5]}, n_iter=Fixed(2), checkpoint=folder, **more
    )


def cut_off(folder, **more):
    """A fit that ends when its first record is used."""

    def interrupted(*given, **named):
        raise KeyboardInterrupt

    one = search(folder, **more)
    with pytest.MonkeyPatch.context() as patch:
        message = "sklearn_dpsearch.search._private_process.PrivateProcess.__call__"
        patch.setattr(message, interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.fit(X, y)


@POSIX
def test_the_folder_is_for_its_owner_alone_and_says_what_it_is(tmp_path):
    before = os.umask(0)
    folder = tmp_path / "deep" / "checkpoint"
    try:
        cut_off(folder)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {STATE, README} <= {file.name for file in folder.iterdir()} <= {STATE, README, LOCK}
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert "as secret as the private records" in (folder / README).read_text()


@POSIX
def test_an_empty_folder_of_the_users_own_is_closed_to_others(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    cut_off(tmp_path / "mine")
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700


@POSIX
def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(PrivacyError, match="(?s)belongs to another user.*folder of your own"):
        search(tmp_path / "theirs").fit(X, y)


def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    mode = tmp_path.stat().st_mode
    with pytest.raises(PrivacyError, match="(?s)thesis.tex.*folder of its own.*empty"):
        search(tmp_path).fit(X, y)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    assert tmp_path.stat().st_mode == mode


def test_a_file_in_which_any_bit_has_changed_is_refused(tmp_path):
    cut_off(tmp_path / "c")
    file = tmp_path / "c" / STATE
    whole = file.read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 60):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(PrivacyError, match="damaged"):
            search(tmp_path / "c").fit(X, y)
    file.write_bytes(whole)
    search(tmp_path / "c").fit(X, y)


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path):
    (tmp_path / "model.pt").write_text("trained")
    with pytest.raises(PrivacyError, match="(?s)Found a file.*a folder is needed"):
        search(tmp_path / "model.pt").fit(X, y)
    assert (tmp_path / "model.pt").read_text() == "trained"


@POSIX
def test_a_checkpoint_has_reached_the_disk_before_it_replaces_the_last(tmp_path, monkeypatch):
    """Or a power cut could leave the new name with nothing behind it."""
    asked = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, real=real: (asked.append((name, args)), real(*args))
        )
    with opened_folder(tmp_path / "c") as folder:
        start = Checkpoint(folder, 0)
        for name, write in (
            (STATE, start._write),
            (RELEASE, lambda _: FileOfSearch(folder / RELEASE, "").write(b"")),
        ):
            asked.clear()
            write({})
            assert [call for call, _ in asked] == ["fsync", "replace", "fsync"]
            assert asked[1][1] == (folder / f"{name}.new", folder / name)


def test_secrets_that_cannot_be_deleted_are_an_error_and_it_can_be_repeated(tmp_path, monkeypatch):
    """Nobody should believe that they are gone."""
    one, unlink = search(tmp_path / "c", random_state=0), Path.unlink

    def failing(self, **kwargs):
        if self.name == STATE:
            raise PermissionError(errno.EACCES, "no")
        unlink(self, **kwargs)

    def fail(*given):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing)
        patch.setattr(FileOfSearch, "write", fail)  # so that the release cannot take their place
        with pytest.raises(PermissionError):
            one.fit(X, y)
    assert not hasattr(one, "best_estimator_")
    found, whole = one.fit(X, y), search(None, random_state=0).fit(X, y)
    assert np.array_equal(found.best_estimator_.centroids_, whole.best_estimator_.centroids_)


def test_a_search_that_never_began_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="inconsistent"):
        search(tmp_path / "c").fit(X, y[1:])
    assert not (tmp_path / "c").exists()


@POSIX
def test_secrets_are_not_written_through_a_link(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / (STATE + NEW_SUFFIX)).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="no way to write a checkpoint"):
        search(tmp_path / "c").fit(X, y)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_use_is_refused(tmp_path):
    with (
        opened_folder(tmp_path / "c"),
        pytest.raises(PrivacyError, match="(?s)is running.*folder of its own.*'lock'"),
    ):
        search(tmp_path / "c").fit(X, y)
    search(tmp_path / "c").fit(X, y)


def test_only_files_of_the_same_search_are_read(tmp_path):
    mine = FileOfSearch(tmp_path / RELEASE, "mine")
    mine.write(b"content")
    assert mine.read() == b"content"
    assert FileOfSearch(tmp_path / RELEASE, "another").read() is None
    (tmp_path / RELEASE).rename(tmp_path / "done-1")
    assert mine.beside("done-1").read() is None
    write_whole(tmp_path / RELEASE, b"content")
    assert mine.read() is None
    assert (tmp_path / RELEASE).stat().st_size == PAYLOAD_START + len(b"content")
