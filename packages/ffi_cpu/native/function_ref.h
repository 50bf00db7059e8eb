// References to functions, so that what calls them is compiled once for each type of arguments.
#pragma once

namespace primax {

// Calls an object that outlives the reference.
template <class... Args>
struct FunctionRef {
  const void* object;
  void (*function)(const void*, Args...);

  template <class F>
  explicit FunctionRef(const F& f)
      : object(&f), function([](const void* object, Args... args) {
          (*static_cast<const F*>(object))(args...);
        }) {}
  void operator()(Args... args) const { function(object, args...); }
};

}  // namespace primax
