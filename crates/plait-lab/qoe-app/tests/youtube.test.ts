// The shapes below are written by hand from the API's documentation; nobody here can reach it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { clipsOf, FramePlayback, idsOf, refusalOf, secondsOf, sizeOf } from "../src/youtube";

test("answers of the Data API become clips", () => {
  const found = {
    kind: "youtube#searchListResponse",
    items: [
      { id: { kind: "youtube#video", videoId: "abcDEF_12-3" } },
      { id: { kind: "youtube#channel", channelId: "x" } },
      { id: { videoId: "a b" } },
    ],
  };
  assert.deepEqual(idsOf(found), ["abcDEF_12-3"]);
  const videos = {
    items: [
      {
        id: "abcDEF_12-3",
        snippet: { title: "A clip" },
        contentDetails: { duration: "PT1M6S", definition: "hd" },
      },
      { id: "noTitle" },
    ],
  };
  const [clip, none] = clipsOf(videos);
  assert.deepEqual([clip?.id, clip?.title, clip?.duration_s], ["abcDEF_12-3", "A clip", 66]);
  assert.equal(none, undefined);
  for (const wrong of [{}, { items: 1 }, { items: [{}] }]) {
    assert.deepEqual([idsOf(wrong), clipsOf(wrong)], [[], []]);
  }
  const refusal = refusalOf({ error: { message: "quota exceeded" } }, 403);
  assert.match(refusal.message, /quota exceeded/);
  assert.match(refusalOf({}, 500).message, /500/);
});

test("durations and qualities are read", () => {
  assert.deepEqual(
    ["PT1H2M3S", "PT45S", "P1DT1S", "PT", "x", ""].map(secondsOf),
    [3723, 45, 86401, 0, 0, 0],
  );
  assert.deepEqual(sizeOf("hd2160"), { width: 3840, height: 2160 });
  assert.deepEqual(sizeOf("auto"), { width: 0, height: 0 });
});

test("a frame's player is read", () => {
  const done: string[] = [];
  const frame = {
    getCurrentTime: () => 10,
    getDuration: () => 100,
    getVideoLoadedFraction: () => 0.5,
    getPlaybackQuality: () => "hd1080",
    getPlayerState: () => 3,
    playVideo: () => done.push("play"),
    pauseVideo: () => done.push("pause"),
    mute: () => undefined,
    destroy: () => done.push("destroy"),
  };
  const playback = new FramePlayback(frame as never);
  const { mediaS, bufferedToS, wants, ended, height } = playback.read();
  assert.deepEqual([mediaS, bufferedToS, wants, ended, height], [10, 50, true, false, 1080]);
  playback.pause();
  playback.play();
  void playback.stop();
  assert.deepEqual(done, ["pause", "play", "destroy"]);
});
