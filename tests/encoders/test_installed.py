"""Tiny networks, made here and saved to folders; nothing is downloaded."""

import json
import logging
import pickle
import socket
import sys
import threading
import time

import numpy as np
import pytest

from unshuffle.encoders import load_encoder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def no_connection(monkeypatch):
    """A machine without a network."""

    def refuse(*arguments, **options):
        raise socket.gaierror("no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("unshuffle.encoders._installed.getproxies", dict)
    torch.manual_seed(0)


class Hostile:
    """A pickle that writes a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def timm_folder(library, tmp_path):
    timm = library("timm")
    network = timm.create_model("test_resnet", pretrained=False).eval()
    timm.models.save_for_hf(network, tmp_path / "timm")
    return tmp_path / "timm", network


@pytest.fixture
def clip_folder(library, tmp_path):
    open_clip = library("open_clip")
    settings = {
        "embed_dim": 8,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
        "text_cfg": {"context_length": 8, "vocab_size": 50, "width": 64, "heads": 1, "layers": 1},
    }
    network = open_clip.CLIP(**settings).eval()
    folder = tmp_path / "clip"
    folder.mkdir()
    about = {"model_cfg": settings, "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3}}
    (folder / "open_clip_config.json").write_text(json.dumps(about))
    torch.save(network.state_dict(), folder / "open_clip_pytorch_model.bin")
    return folder, network


@pytest.fixture
def text_folder(library, tmp_path):
    modules = library("sentence_transformers.sentence_transformer.modules")
    network = library("sentence_transformers").SentenceTransformer(
        modules=[modules.BoW(["cat", "dog", "sun"])], device="cpu"
    )
    folder = tmp_path / "texts"
    network.save(str(folder), create_model_card=False)
    return folder


def test_a_network_of_timm_gets_pictures_as_it_was_trained(timm_folder, pictures, library):
    folder, network = timm_folder
    timm, images = library("timm"), library("PIL.Image")
    encoder = load_encoder(f"timm:local-dir:{folder}")
    assert (encoder.items, encoder.side) == ("images", 160)
    prepare = timm.data.create_transform(**timm.data.resolve_model_data_config(network))
    pixels = torch.stack([prepare(images.fromarray(each)) for each in pictures])
    with torch.no_grad():
        expected = network.forward_head(network.forward_features(pixels), pre_logits=True)
    vectors = encoder.encode(pictures)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-3, atol=1e-4)


def test_a_gpu_gives_the_same_vectors(timm_folder, pictures, gpu):
    name = f"timm:local-dir:{timm_folder[0]}"
    on_cores, on_device = load_encoder(name), load_encoder(name, device=gpu)
    assert on_cores.key == on_device.key
    np.testing.assert_allclose(
        on_device.encode(pictures), on_cores.encode(pictures), rtol=1e-2, atol=1e-3
    )


def test_the_picture_side_of_open_clip_gives_unit_vectors(clip_folder, pictures):
    folder, network = clip_folder
    encoder = load_encoder(f"open_clip:local-dir:{folder}")
    assert (encoder.items, encoder.side) == ("images", 32)
    vectors = encoder.encode(pictures)
    assert vectors.shape == (11, 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    plain = torch.full((1, 3, 32, 32), 1.0)  # white, after the mean and deviation above
    with torch.no_grad():
        expected = torch.nn.functional.normalize(network.encode_image(plain))
    white = np.full((1, 32, 32, 3), 255, dtype=np.uint8)
    np.testing.assert_allclose(encoder.encode(white), expected, atol=1e-4)


def test_a_folder_of_sentence_transformers_encodes_texts(text_folder):
    encoder = load_encoder(f"sentence-transformers:{text_folder}")
    assert (encoder.items, encoder.side) == ("texts", None)
    vectors = encoder.encode(["cat", "dog and dog", "nothing", "cat sun"])
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, [[1, 0, 0], [0, 2, 0], [0, 0, 0], [1, 0, 1]])


def test_a_transformer_of_a_folder_encodes_texts_as_the_library_does(library, tmp_path):
    transformers = library("transformers")
    sentence_transformers = library("sentence_transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    (tmp_path / "bert").mkdir()
    settings = transformers.BertConfig(
        vocab_size=7,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    transformers.BertModel(settings).save_pretrained(tmp_path / "bert")
    transformers.BertTokenizerFast(vocab=str(tmp_path / "vocab.txt")).save_pretrained(
        tmp_path / "bert"
    )
    encoder = load_encoder(f"sentence-transformers:{tmp_path / 'bert'}")
    vectors = encoder.encode(["cat", "dog dog cat"])
    assert vectors.shape == (2, 8)
    network = sentence_transformers.SentenceTransformer(str(tmp_path / "bert"), device="cpu")
    np.testing.assert_allclose(vectors, network.encode(["cat", "dog dog cat"]), atol=1e-5)


def test_keys_follow_weights_and_words(timm_folder, library, tmp_path):
    folder, network = timm_folder
    name = f"timm:local-dir:{folder}"
    before = load_encoder(name).key
    assert load_encoder(name).key == before
    with torch.no_grad():
        next(network.parameters())[0] += 1e-3
    library("timm").models.save_for_hf(network, folder)
    assert load_encoder(name).key != before


def test_keys_of_texts_follow_the_words(library, text_folder):
    name = f"sentence-transformers:{text_folder}"
    before = load_encoder(name).key
    assert load_encoder(name).key == before
    [path] = [path for path in text_folder.rglob("*.json") if '"vocab"' in path.read_text()]
    path.write_text(path.read_text().replace('"cat"', '"cow"'))
    assert load_encoder(name).key != before


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("timm:none_such", "Unknown model"),
        ("timm:local-dir:none/such", "not found"),
        ("timm:resnet18", "needs a connection"),
        ("open_clip:none-such", "not one of the networks with weights"),
        ("open_clip:RN50/none", "RN50 has the weights openai"),
        ("open_clip:RN50//tmp/weights", "RN50 has the weights openai"),
        ("open_clip:RN50/cc12m", "needs a connection"),
        ("open_clip:local-dir:none/such", "not found"),
        ("sentence-transformers:/none/such", "there is no such folder"),
        ("sentence-transformers:none/such", "needs a connection"),
    ],
)
def test_unknown_names_and_a_missing_connection_are_one_sentence(
    library, name, told, tmp_path, monkeypatch
):
    kind = name.partition(":")[0]
    constants = library("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    library(kind.replace("-", "_"))
    with pytest.raises(ValueError, match=f"{kind} cannot load .*{told}"):
        load_encoder(name)
    assert constants.HF_HUB_OFFLINE in (False, None)  # as it was


def log_elsewhere(words):
    """Log from another thread."""
    thread = threading.Thread(target=logging.getLogger("of.others").error, args=(words,))
    thread.start()
    thread.join()


def test_only_the_messages_of_a_load_are_dropped(library, monkeypatch, caplog):
    def fail(*arguments, **options):
        logging.getLogger("timm.models").error("of the library")
        logging.getLogger("timm.models").critical("of the library, critical")
        logging.root.error("of the library too")
        log_elsewhere("of another thread")
        raise RuntimeError("no such network")

    monkeypatch.setattr(library("timm"), "create_model", fail)
    with pytest.raises(ValueError, match="no such network"):
        load_encoder("timm:any")
    logging.getLogger("of.others").error("later")
    assert caplog.messages == ["of the library, critical", "of another thread", "later"]


def test_loads_in_two_threads_leave_everything_as_it_was(library, monkeypatch, caplog):
    constants, timm = library("huggingface_hub.constants"), library("timm")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    begun, ended = threading.Semaphore(0), []

    def fail(name, **options):
        begun.release()
        # Until the other one began too, if it can.
        for _ in range(20):
            if len(ended) or begun._value > 1:
                break
            time.sleep(0.02)
        time.sleep(0.1 if name == "late" else 0)
        raise RuntimeError("no such network")

    def load(name):
        with pytest.raises(ValueError, match="no such network"):
            load_encoder(f"timm:{name}")
        ended.append(name)

    monkeypatch.setattr(timm, "create_model", fail)
    threads = [threading.Thread(target=load, args=(name,)) for name in ("early", "late")]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["early", "late"]
    logging.getLogger("of.others").warning("later")
    assert caplog.messages == ["later"]
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.parametrize("name", ["timm", "open_clip", "sentence-transformers"])
def test_a_missing_library_says_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name.replace("-", "_"), None)
    with pytest.raises(ImportError, match=rf'needs {name}.*pip install "unshuffle\[encoders\]"'):
        load_encoder(f"{name}:any")


def test_versions_that_run_code_of_a_folder_are_refused(library, text_folder, monkeypatch):
    monkeypatch.setattr("unshuffle.encoders._installed.version", lambda name: "5.7.1rc1")
    with pytest.raises(ImportError, match=r"Install 6\.0\.0 or newer: pip install --upgrade"):
        load_encoder(f"sentence-transformers:{text_folder}")


def test_a_hostile_pickle_in_a_folder_of_timm_does_not_run(timm_folder, tmp_path):
    folder, _ = timm_folder
    for path in folder.glob("*model*"):
        path.unlink()
    torch.save({"conv1.0.weight": Hostile(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="timm cannot load"):
        load_encoder(f"timm:local-dir:{folder}")
    assert not (tmp_path / "ran").exists()


def test_a_hostile_pickle_in_a_folder_of_open_clip_does_not_run(clip_folder, tmp_path):
    folder, _ = clip_folder
    torch.save({"logit_scale": Hostile(tmp_path / "ran")}, folder / "open_clip_pytorch_model.bin")
    with pytest.raises(ValueError, match="open_clip cannot load"):
        load_encoder(f"open_clip:local-dir:{folder}")
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_weights_is_refused(clip_folder, timm_folder):
    (clip_folder[0] / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(ValueError, match="open_clip cannot load"):
        load_encoder(f"open_clip:local-dir:{clip_folder[0]}")
    for path in timm_folder[0].glob("*model*"):
        path.unlink()
    with pytest.raises(ValueError, match="timm cannot load"):
        load_encoder(f"timm:local-dir:{timm_folder[0]}")


def test_weights_of_other_shapes_and_cut_files_are_refused(clip_folder):
    folder, network = clip_folder
    path = folder / "open_clip_pytorch_model.bin"
    whole = path.read_bytes()
    state = network.state_dict()
    torch.save({name: values[..., :1] for name, values in state.items() if values.ndim}, path)
    with pytest.raises(ValueError, match="open_clip cannot load"):
        load_encoder(f"open_clip:local-dir:{folder}")
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="open_clip cannot load"):
        load_encoder(f"open_clip:local-dir:{folder}")


@pytest.mark.parametrize("kind", ["evil.Module", "os.system", "modeling_evil.Evil"])
def test_code_in_a_folder_of_texts_does_not_run(text_folder, tmp_path, kind):
    for name in ("evil", "modeling_evil"):
        code = f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\nclass Module: pass\n"
        (text_folder / f"{name}.py").write_text(code)
    path = text_folder / "modules.json"
    modules = json.loads(path.read_text())
    modules[0]["type"] = kind
    path.write_text(json.dumps(modules))
    with pytest.raises(ValueError, match="sentence-transformers cannot load"):
        load_encoder(f"sentence-transformers:{text_folder}")
    assert not (tmp_path / "ran").exists()


def test_a_hostile_pickle_in_a_folder_of_texts_does_not_run(library, tmp_path):
    modules = library("sentence_transformers.sentence_transformer.modules")
    network = library("sentence_transformers").SentenceTransformer(
        modules=[modules.BoW(["cat", "dog"]), modules.LayerNorm(2)], device="cpu"
    )
    folder = tmp_path / "texts"
    network.save(str(folder), create_model_card=False)
    [weights] = folder.rglob("*.safetensors")
    weights.with_name("pytorch_model.bin").write_bytes(pickle.dumps(Hostile(tmp_path / "ran")))
    weights.unlink()
    with pytest.raises(ValueError, match="sentence-transformers cannot load"):
        load_encoder(f"sentence-transformers:{folder}")
    assert not (tmp_path / "ran").exists()
