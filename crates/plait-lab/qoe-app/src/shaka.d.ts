declare module "shaka-player/dist/shaka-player.compiled-es2021.js" {
  import shaka from "shaka-player/dist/shaka-player.compiled-es2021";
  export default shaka;
}
